// pawl-python.mjs - the side of durable code in Python (ten.py).
import "./pawl_code.mjs";
