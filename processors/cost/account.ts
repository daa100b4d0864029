/** What the account of a correction says: the ledger's account, and whose spending it corrects. */
export interface AccountParts {
  /** Such as `spend:model`. */
  readonly name: string;
  readonly model: string | null;
  readonly tool: string | null;
  readonly user: string | null;
  readonly agent: string | null;
  readonly runtime: string | null;
  readonly environment: string | null;
}

/**
 * The account of a correction as its event carries it: `spend:model?model=…&user=…`. The dimensions stand in it, because
 * the event's own actor is who corrects, and because an event that needs no other one to be booked is booked the same in
 * whatever order they come.
 */
export function toAccount(parts: AccountParts): string {
  const { name, ...dimensions } = parts;
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(dimensions)) if (value !== null) query.set(key, value);
  return query.size === 0 ? name : `${name}?${query.toString()}`;
}

/** Reads an account; one without dimensions, such as `spend`, corrects the tenant alone. */
export function parseAccount(account: string): AccountParts {
  const cut = account.indexOf("?");
  const query = new URLSearchParams(cut === -1 ? "" : account.slice(cut + 1));
  return {
    name: cut === -1 ? account : account.slice(0, cut),
    model: query.get("model"),
    tool: query.get("tool"),
    user: query.get("user"),
    agent: query.get("agent"),
    runtime: query.get("runtime"),
    environment: query.get("environment"),
  };
}
