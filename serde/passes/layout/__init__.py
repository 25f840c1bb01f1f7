"""The order of the axes of images: channels first in the IR, channels last in some targets."""
