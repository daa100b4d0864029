// Copies what the compiler leaves out (schemas, SQL, pages, plugins) beside the compiled code in dist/.
import { cpSync, existsSync, statSync } from "node:fs";

const COMPILED = /\.(ts|tsbuildinfo)$/;

for (const folder of ["schemas", "services", "processors"]) {
  if (!existsSync(folder)) continue;
  cpSync(folder, `dist/${folder}`, {
    recursive: true,
    filter: (source) => statSync(source).isDirectory() || !COMPILED.test(source),
  });
}
