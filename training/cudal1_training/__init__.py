"""The three training stages of CUDA-L1 (arXiv 2507.14111), headless."""
