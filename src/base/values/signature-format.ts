export const signatureFormats = ['eip712', 'jws'] as const;

/** How a signature is written: over EIP-712 typed data, or as a compact JSON Web Signature. */
export type SignatureFormat = (typeof signatureFormats)[number];
