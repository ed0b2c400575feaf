// Keys, signatures and names that are not what they say.
import './suites/weak-keys-refused.ts'
import './suites/claimed-names.ts'
import './suites/cross-protocol.ts'
