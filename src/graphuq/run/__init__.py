"""One posterior and one method make one result: choose the sampler, run, stop, summarise."""
