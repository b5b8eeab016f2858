"""Six of the twenty newsgroups as tf-idf vectors."""

import io
import re
import tarfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from graphuq.datasets.base import Dataset, RemoteFile, find_local, locate
from graphuq.errors import StorageError, require

ARCHIVE = RemoteFile(
    path="newsgroups/six-groups-19997.tar.xz",
    sha256="022733b3592bdc55cd322b8b06299ea15d79ff1fb56d566423c47111b313d0cf",
    address="",
)
GROUPS = (
    "rec.sport.baseball",
    "rec.sport.hockey",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "talk.religion.misc",
    "alt.atheism",
)
OTHERS = [  # the other fourteen of the twenty groups
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
]


class Post(NamedTuple):
    """Parts of a post that are used."""

    group: str
    groups: list[str]
    sender: str
    subject: str
    body: str


def load_newsgroups(
    groups: tuple[str, ...] = GROUPS,
    *,
    classical_idf: bool = False,
    folder: str | Path | None = None,
) -> Dataset:
    """Load the newsgroups of Zhu, Lafferty & Ghahramani as sparse tf-idf vectors of unit length.

    The file holds posts of the edition of 19,997 posts. They are reduced like the edition of
    18,828 posts that the paper uses. A post with a copy is dropped together with all copies, and
    only the headers From and Subject are kept. With that rule baseball and atheism have as many
    posts as in the paper's edition (994, 799). Copies in groups that are not among the six cannot
    be detected; posts that were also sent to those groups are therefore dropped.

    Parameters
    ----------
    groups : tuple of str
        Two or more of `GROUPS`; all six by default.
    classical_idf : bool, default False
        A word of ``df`` of N posts has the weight ``log(N/df)`` (Spärck Jones 1972), which is 0
        for a word of all posts. By default it is ``log(N/df) + 1``, as scikit-learn has it.
    folder : path, optional
        Data folder that holds ``newsgroups/six-groups-19997.tar.xz``. There is no public copy to
        download.

    Returns
    -------
    Dataset
        ``features`` is a `scipy.sparse.csr_array` with one column per word; ``classes`` holds the
        names of the groups.

    Raises
    ------
    InvalidInput
        If a group is not among the six.
    StorageError
        If the file is missing or corrupt.
    """
    unknown = [name for name in groups if name not in GROUPS]
    require(
        not unknown and len(groups) > 1,
        "groups",
        f"{groups}",
        f"use two or more of {', '.join(GROUPS)}",
    )
    kept = [post for post in _without_copies(_read_posts(folder)) if post.group in groups]
    kept.sort(key=lambda post: groups.index(post.group))
    texts = [f"{post.sender}\n{post.subject}\n{post.body}" for post in kept]
    words = TfidfVectorizer(token_pattern=r"[a-z]{2,}", sublinear_tf=False, smooth_idf=False)
    features = words.fit_transform(texts)
    if classical_idf:
        features = normalize(features @ sparse.diags_array(1 - 1 / words.idf_))
    return Dataset(
        features=sparse.csr_array(features.astype(np.float64)),
        classes=np.array([post.group for post in kept]),
        name=f"newsgroups: {' and '.join(groups)}",
        source="20 Newsgroups (19,997 posts), collected by Ken Lang",
        feature_names=tuple(words.get_feature_names_out()),
        description="Newsgroup posts as tf-idf vectors of unit length, one column per word.",
    )


def _without_copies(posts: list[Post]) -> list[Post]:
    """Return the posts without a copy in any of the twenty groups."""
    copies = Counter((post.sender, post.subject, post.body) for post in posts)
    return [
        post
        for post in posts
        if copies[post.sender, post.subject, post.body] == 1
        and not any(name in OTHERS for name in post.groups)
    ]


def _read_posts(folder: str | Path | None) -> list[Post]:
    if find_local(ARCHIVE, folder) is None:
        raise StorageError(
            f"'{ARCHIVE.path}' is in no data folder; put it into one and pass that as folder=... "
            "or in the environment variable GRAPHUQ_DATA"
        )
    content = locate(ARCHIVE, folder).read_bytes()
    posts = []
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                group = Path(member.name).parent.name
                posts.append(_parse_post(group, file.read().decode("latin-1")))
    return posts


def _parse_post(group: str, text: str) -> Post:
    head, _, body = text.partition("\n\n")

    def header(name: str) -> str:
        found = re.search(rf"^{name}:\s*(.*(?:\n[ \t].*)*)", head, re.MULTILINE)
        return found.group(1) if found else ""

    groups = [name for name in re.split(r"[,\s]+", header("Newsgroups")) if name]
    return Post(group, groups, header("From"), header("Subject"), body.strip())
