import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';

/** What is wrong with a request's body: one line a fault, at most ten. Empty where nothing is. */
export type InputCheck = (body: Uint8Array) => readonly string[];

const faultsTold = 10;

/**
 * A check of JSON bodies against a JSON Schema, draft 2020-12.
 * Throws where the schema does not compile; keywords that nobody knows are mistakes, and nothing is fetched.
 */
export function compileSchema(schema: Readonly<Record<string, unknown>>): InputCheck {
  // formats are for people: which of them are checked, and how well, differs from tool to tool
  const ajv = new Ajv2020({
    allErrors: true,
    validateFormats: false,
    strictTypes: false,
    strictRequired: false,
  });
  const validate = ajv.compile(schema);
  return (body) => {
    const value = parseJson(body);
    if (value === undefined) return ['the body is not JSON in UTF-8'];
    return validate(value) ? [] : (validate.errors ?? []).slice(0, faultsTold).map(faultText);
  };
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/** Names the place and the rule; never quotes the client's own text. */
function faultText({ instancePath, keyword, message }: ErrorObject): string {
  return `${instancePath === '' ? 'the body' : instancePath.slice(0, 200)} ${message ?? `breaks ${keyword}`}`;
}

/** The media type of a content type header: lower case, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}
