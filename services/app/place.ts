import { sep } from "node:path";
import { join } from "node:path";
import { findPackageDir } from "../stack/machine.ts";

/** Where this installation keeps its things. */
export interface Place {
  /** The package: schemas, migrations, policy, recordings. */
  readonly packageDir: string;
  /** `.fabric/` is below it: the clone, or the folder where an installed package is used. */
  readonly rootDir: string;
}

/** A clone keeps its state in itself; an installed package keeps it in the working directory. */
export async function findPlace(workingDirectory: string): Promise<Place> {
  const packageDir = await findPackageDir();
  const installed = packageDir.split(sep).includes("node_modules");
  return { packageDir, rootDir: installed ? workingDirectory : packageDir };
}

/** Files of one local stack that belong to the services; the servers' own files are the stack room's. */
export function localFiles(place: Place, stack: string) {
  const dir = join(place.rootDir, ".fabric", stack, "services");
  return {
    dir,
    envFile: join(dir, "fabric.env"),
    passwordsFile: join(dir, "role-passwords.json"),
    kekFile: join(dir, "kek.json"),
    authKeysFile: join(dir, "token-keys.json"),
    capabilityKeysFile: join(dir, "capability-keys.json"),
    sealKeyFile: join(dir, "seal-key.pem"),
    sealPublicKeysDir: join(dir, "seal-public-keys"),
    tokenFile: join(dir, "runtime.token"),
    watchKeyFile: join(dir, "watch-key.json"),
    /** Tokens of the watch over spending, `<tenant>.token` each. */
    reporterTokensDir: join(dir, "reporter-tokens"),
    policyDir: join(place.packageDir, "deploy", "policy", "default"),
    migrationsDir: join(place.packageDir, "deploy", "migrations"),
  };
}
export type LocalFiles = ReturnType<typeof localFiles>;
