/** Programs with a short option of their own for a password: alone before it, or with it in one word. */
const passwordOptions: readonly (readonly [program: RegExp, option: string, isApart: boolean])[] = [
  [/(?:^|[/\\])(?:mysql[a-z]{0,12}|mariadb(?:-[a-z]{1,12})?)$/, "-p", false],
  [/(?:^|[/\\])sshpass$/, "-p", true],
  [/(?:^|[/\\])sshpass$/, "-p", false],
  [/(?:^|[/\\])(?:redis|keydb|valkey)-cli$/, "-a", true],
];
/** The place of a program's password in a list of arguments, or -1. */
export function passwordPlace(items: readonly unknown[]): number {
  const [program] = items;
  if (typeof program !== "string" || program.length > 256) return -1;
  for (const [name, option, isApart] of passwordOptions) {
    if (!name.test(program)) continue;
    const at = items.findIndex(
      (one) =>
        typeof one === "string" && (isApart ? one === option : one !== option && one.startsWith(option)),
    );
    if (at > 0) return isApart ? at + 1 : at;
  }
  return -1;
}
