// biome-ignore lint/correctness/useImportExtensions: it is JavaScript, with its types beside it
export { bigText, envelope, frame } from '../floor/lib/payload.mjs'
