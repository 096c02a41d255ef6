"""MAILBOX.md as text: sections, cards, the tables that follow from the cards, and what is wrong with any of it."""
