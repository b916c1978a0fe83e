/** The roles of the console, each with the rights of those before it. */
export const operatorRoles = ['viewer', 'finance', 'operator', 'admin'] as const;

export type OperatorRole = (typeof operatorRoles)[number];

/** `viewer` reads; `finance` keeps the books; `operator` runs payments and calls; An `admin` appoints and removes operators. */
export function isRole(text: string | undefined): text is OperatorRole {
  return operatorRoles.some((role) => role === text);
}

/** Whether a role includes the rights of another one. */
export function includesRole(held: OperatorRole, needed: OperatorRole): boolean {
  return operatorRoles.indexOf(held) >= operatorRoles.indexOf(needed);
}
