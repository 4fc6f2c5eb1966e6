"""Commands that users write as comments below issues."""
