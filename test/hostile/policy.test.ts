// What policy lets through, and what is lent: against peers that say what they like.
import './suites/policy.ts'
