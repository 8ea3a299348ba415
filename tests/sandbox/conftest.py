from testing.sandboxes import on_disk

__all__ = ["on_disk"]
