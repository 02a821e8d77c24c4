<?php
namespace App;

/** State that must not pass from one request to the next: a singleton and a static. */
final class Counter
{
    public static int $all = 0;
    public int $own = 0;
}
