<?php

/* Leaves a trace where the sandbox does not hold. */
if (@file_get_contents(dirname(__DIR__, 3) . '/outside.txt') !== false) {
    ini_set('precision', '5');
}
