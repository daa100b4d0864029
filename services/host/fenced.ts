/** The member lost its partition to another one: its transaction was undone, and nothing is wrong with the records. */
export class Fenced extends Error {
  constructor(partition: string) {
    super(`another member moved the position of ${partition}`);
    this.name = "Fenced";
  }
}
