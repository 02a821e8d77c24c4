<?php
function work($n) {
    $n = $n * 2;
    return "worked $n";
}
