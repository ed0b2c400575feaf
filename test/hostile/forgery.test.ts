// Keys, signatures and names that are not what they say.
import './suites/forged-sender.ts'
import './suites/cross-protocol.ts'
