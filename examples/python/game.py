"""game.py - the examples as a module: pawl serve --module examples/python/game.py

Combat changes rows of its host (reduce). A plain server has none, and refuses that turn by name."""
from auction import auction
from buff import buff
from combat import combat
from patrol import patrol
from quest import quest
from trade import trade

__all__ = ["auction", "buff", "combat", "patrol", "quest", "trade"]
