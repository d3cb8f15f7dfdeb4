"""Pictures of overlays."""
