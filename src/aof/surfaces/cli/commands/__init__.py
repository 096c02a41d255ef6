"""What each verb does that is more than an operation.

Modules are loaded by the verb's row, so each holds what is used together.
"""
