"""How a decision is made: from the frozen request to the stored answer."""
