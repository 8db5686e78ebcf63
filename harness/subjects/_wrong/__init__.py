"""Controls: clients that are wrong on purpose.

A laboratory in which only a right client was ever seen proves little. Each of these is a small
program behind the same subject protocol, and each must be caught.
"""
