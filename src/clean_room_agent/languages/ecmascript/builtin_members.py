"""Member names of JavaScript built-ins and of the DOM, which say nothing about a reference."""

NAMES = (
    "add addEventListener all allSettled any append appendChild apply assign async at before bind blur body call "
    "catch charAt charCodeAt children classList clear click clone close closest concat constructor contains content "
    "copyWithin count create createElement data default defineProperty delete description destroy disconnect "
    "dispatchEvent display done each emit end endsWith entries error every exec exit exports fetch fill filter "
    "finally find findIndex findLast first flags flat flatMap focus forEach freeze from fromEntries get "
    "getAttribute getTime global has hash hasOwnProperty head headers hide href id includes indexOf info init "
    "innerHTML insert insertBefore is isArray item join json key keys kind label last lastIndexOf length listen "
    "load local localeCompare lookup map match matchAll max message method min name next nodeType normalize now "
    "number observe off on once open options order parent parentNode parse path pop port position prepend "
    "preventDefault process prototype push put query querySelector race raw read ready reason reduce reduceRight "
    "reject remove removeAttribute removeChild removeEventListener repeat replace replaceAll replaceWith request "
    "reset resolve response result return reverse root run search select send set setAttribute shift show size "
    "slice some sort source splice split start startsWith state status stop stringify style sub substring tagName "
    "target test text textContent then throw toFixed toJSON toLowerCase toString toUpperCase trace trim trimEnd "
    "trimStart type unshift update url use value valueOf values version wait warn with write"
)
COMMON_MEMBERS = frozenset(NAMES.split())
"""A unique definition of such a name says nothing of what a use on an unknown object means."""
