// openapi.mjs - is this document valid against the official schema of OpenAPI 3.1?   node openapi.mjs MODULES FILE
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, file] = process.argv.slice(2);
const from = createRequire(modules + "/");
const { Validator } = await import(pathToFileURL(from.resolve("@seriousme/openapi-schema-validator")));
const validator = new Validator();
const result = await validator.validate(JSON.parse(readFileSync(file, "utf8")));

console.log(JSON.stringify({ valid: result.valid, version: validator.version, errors: result.errors ?? [] }));
