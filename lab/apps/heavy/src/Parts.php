<?php

namespace Heavy;

/** The many services that an application of this size builds before it responds; the weight sets their number. */
final class Parts
{
    private int $built = 0;

    public function __construct(private iterable $parts)
    {
    }

    /** Runs once for each kernel, as listeners and extensions of a framework do. */
    public function build(int $wanted): void
    {
        if ($this->built >= $wanted) {
            return;
        }
        $this->built = 0;
        foreach ($this->parts as $part) {
            if ($this->built++ >= $wanted) {
                break;
            }
            $part->prepare('shop');
        }
    }
}
