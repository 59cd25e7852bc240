"""Git objects: read, write, walk and measure blobs, trees and commits.

Promise: an object that was written survives a crash; an object that is read has the content of
its id, or is reported as damaged.
"""
