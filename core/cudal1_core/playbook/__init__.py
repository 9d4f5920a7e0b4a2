"""The playbook: known optimisations, one a file, and the search over them. Needs no model and no GPU.

Everything here but `messages` imports torch and so runs in a child: `python -m cudal1_core.playbook`.
"""
