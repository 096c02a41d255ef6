"""What each verb does: call the fabric, word the answer."""
