"""The subjects: one folder each, `<name>/subject.toml` and the program that it starts.

A subject is any client, in any language, behind the subject protocol. Folders that begin with `_`
hold controls: clients that are wrong on purpose, so that the laboratory can be seen to find it.
"""
