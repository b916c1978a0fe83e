// Amounts of credit and of tokens, as the pages of the server show them.

/** Atoms as a decimal text in its shortest form: `10.5`. */
export function decimalText(atoms, decimals) {
  const digits = String(BigInt(atoms)).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const rest = digits.slice(digits.length - decimals).replace(/0+$/, '');
  return `${whole}${rest && `.${rest}`}`;
}

/** Exactly, with at least two digits after the point. */
export function amountText(text) {
  const [whole, rest = ''] = text.split('.');
  return `${whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')}.${rest.padEnd(2, '0')}`;
}
