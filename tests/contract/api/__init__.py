"""What an API server does, case by case: passed by a real one, and by the embedded one in memory and over HTTPS."""
