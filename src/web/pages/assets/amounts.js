// Amounts of credit, as the pages of the server show them.

/** Exactly, with at least two digits after the point. */
export function amountText(text) {
  const [whole, rest = ''] = text.split('.');
  return `${whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')}.${rest.padEnd(2, '0')}`;
}
