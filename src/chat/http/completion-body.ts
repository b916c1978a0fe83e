/** Whether the headers declare uncompressed JSON, with or without a charset. */
export function isPlainJson(headers: {
  readonly 'content-type'?: string | undefined;
  readonly 'content-encoding'?: string | undefined;
}): boolean {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  return /^application\/json\s*(?:;|$)/i.test(type) && encoding.toLowerCase() === 'identity';
}
