"""What the pages show is tried out: every command, every manifest, every table that the code has, too."""
