// dbos-python.mjs - the side of DBOS in Python (dbos_ten.py).   dbos-python.mjs PYTHON URL [CONNECTIONS]
import { fileURLToPath } from "node:url";
import { through } from "./through.mjs";

const [python, ...words] = process.argv.slice(2);
through(python, [fileURLToPath(new URL("dbos_ten.py", import.meta.url)), ...words]);
