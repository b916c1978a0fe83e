// Amounts of credit, as the pages of the server show them.

/** Two digits after the point, or all if two would show nothing. */
export function twoDigits(text) {
  const [whole, rest = ''] = text.split('.');
  if (whole === '0' && rest.startsWith('00') && /[1-9]/.test(rest)) return text;
  return `${whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')}.${rest.padEnd(2, '0').slice(0, 2)}`;
}
