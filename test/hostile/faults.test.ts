// Bytes and lengths that are meant to hurt, resets at every point.
import './suites/lengths.ts'
import './suites/bombs.ts'
import './suites/link-faults.ts'
import './suites/schemas.ts'
