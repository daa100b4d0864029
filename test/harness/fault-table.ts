import { closeCells, forgetCells } from "../fault/ledger/cell-report.ts";

/** Forgets the cells of the run before, and prints those of this one when it ends. */
const setup = async (): Promise<() => Promise<void>> => {
  await forgetCells();
  return async () => {
    const table = await closeCells();
    if (table !== "") process.stdout.write(`\nfaults (.fabric/reports/faults.json)\n${table}\n`);
  };
};

export default setup;
