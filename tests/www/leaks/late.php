<?php
/* Included by a request, not by the application's start. */

const LATE = 1;

function late(): int
{
    static $n = 0;

    return ++$n;
}
