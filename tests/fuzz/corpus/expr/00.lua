
  result >= 1
  and result <= 2 -- in between
