"""What an agent may do on its own: permissions, budgets, and where they are enforced."""
