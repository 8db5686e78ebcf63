"""The laboratory: plays frozen cases to subjects over real loopback HTTP and seals what happened.

This island never judges: it opens no label, and computes no outcome. It imports neither `client`
nor `audit`; a subject is a process, and a verdict is what the auditor's process prints.
"""
