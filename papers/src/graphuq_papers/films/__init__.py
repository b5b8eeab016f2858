"""Films of a moving object: frames as labels of pixels, and where the object is."""

from graphuq_papers.films.figures import frame_panels, plot_frames
from graphuq_papers.films.frames import Frames, load_frames, moving_ball
from graphuq_papers.films.tracking import track

__all__ = ["Frames", "frame_panels", "load_frames", "moving_ball", "plot_frames", "track"]
