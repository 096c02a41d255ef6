"""Crashes, races, hand edits, power cuts and failing disks: whatever happens, nothing that was acknowledged is lost."""
