"""Deletes what nobody needs any more, with notice: objects whose time to live is over, by annotation or by rule."""
