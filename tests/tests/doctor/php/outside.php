<?php

/* Leaves a trace if the sandbox is ineffective. */
if (@file_get_contents(dirname(__DIR__, 3) . '/outside.txt') !== false) {
    ini_set('precision', '5');
}
