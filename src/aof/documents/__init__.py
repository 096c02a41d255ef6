"""WORKLOG, MAILBOX and charter as text: parse and render. Pure: no I/O, no clock, no rule about who may do what."""
