"""The names that values have from their prototypes: node reads a function there, so we refuse.

Of node 20, all years of ECMAScript so far; a name that is in no list is undefined.
"""

_OF_OBJECTS = (
    "__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ __proto__ constructor "
    "hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf"
)
OBJECT = frozenset(_OF_OBJECTS.split())

_OF_ARRAYS = (
    "at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat "
    "flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight "
    "reverse shift slice some sort splice toReversed toSorted toSpliced unshift values with"
)
ARRAY = frozenset(_OF_ARRAYS.split())

_OF_TEXTS = (
    "anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor "
    "fontsize includes indexOf isWellFormed italics lastIndexOf link localeCompare match matchAll "
    "normalize padEnd padStart repeat replace replaceAll search slice small split startsWith "
    "strike sub substr substring sup toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase "
    "toWellFormed trim trimEnd trimLeft trimRight trimStart"
)
TEXT = frozenset(_OF_TEXTS.split())

_OF_NUMBERS = "toExponential toFixed toPrecision"
NUMBER = frozenset(_OF_NUMBERS.split())
